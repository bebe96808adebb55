"""WGSL: functions that kernels call, and kernels made of templates and formulas."""
