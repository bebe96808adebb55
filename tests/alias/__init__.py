"""votive under the name of torch. Each test runs in a process of its own, since others import the real torch."""
