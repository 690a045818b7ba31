"""jorth in the hands of other libraries: `jorth.adapters.pymanopt`, `jorth.adapters.geoopt`, `jorth.adapters.pykeen`.

The first two have O(p, q) as a manifold, the third UltraE as a model. Each is imported by its full name, since each
needs its library: ``pip install 'jorth[adapters]'`` and, for PyKEEN, ``'jorth[kge]'``.
"""
