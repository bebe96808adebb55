"""Where operators run: the kernel table and the devices."""
