"""How bytes get from rank to rank: MPI between processes, memory between threads, NCCL between GPUs."""
