"""The machine whose memory and kernels others use: a front that listens, and a process for each session."""
