"""Parts of the pytest plugin, which need no pytest."""
