"""Cross entropy and likelihoods: one reading of the logits forward, one reading and writing backward. The softmax is
never written down.
"""
