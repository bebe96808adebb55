"""Tests of optimizers, schedules and weight averaging."""
