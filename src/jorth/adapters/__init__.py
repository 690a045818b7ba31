"""jorth in other libraries: `jorth.adapters.pymanopt`, `jorth.adapters.geoopt`, `.pykeen`.

The first two provide O(p, q) as a manifold, the third UltraE as a model. Each is imported by its
full name, since each needs its library: ``pip install "jorth[adapters]"`` or, for PyKEEN,
``"jorth[kge]"``.
"""
