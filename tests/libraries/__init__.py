"""Libraries of torch, as they are on PyPI, run on votive and compared with torch. `VOTIVE_LIBRARIES=1` runs them."""
