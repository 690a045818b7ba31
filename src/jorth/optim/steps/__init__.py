"""What a step of `jorth.optim.JOBCD` does to a batch of matrices, on the CPU and on a device."""
