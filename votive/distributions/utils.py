"""What distributions are written with, under torch's names."""

from .joined_transforms import tril_matrix_to_vec as tril_matrix_to_vec
from .joined_transforms import vec_to_tril_matrix as vec_to_tril_matrix
from .parameters import broadcast_all as broadcast_all
from .parameters import clamp_probs as clamp_probs
from .parameters import lazy_property as lazy_property
from .parameters import logits_to_probs as logits_to_probs
from .parameters import probs_to_logits as probs_to_logits
