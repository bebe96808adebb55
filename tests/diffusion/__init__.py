"""Denoisers, autoencoders, schedulers and pipelines of diffusion beside diffusers'."""
