"""What everything stands on: types, layouts, storage, devices, generators, errors."""
