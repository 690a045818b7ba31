"""O(p, q) as a manifold of other libraries: `jorth.adapters.pymanopt` and `jorth.adapters.geoopt`.

Each is imported by its full name, since each needs its library: ``pip install 'jorth[adapters]'``.
"""
