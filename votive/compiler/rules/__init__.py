"""The compiler's rewrites. Rules are tried in the order of these modules."""

from . import norms, rotation, few_rows, decoding, residual, products, losses  # noqa: F401, I001 - they fill the table
from .table import RULES, Match, Rule, apply_rules, rule

__all__ = ["RULES", "Match", "Rule", "apply_rules", "rule"]
