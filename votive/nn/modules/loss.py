"""Losses, under the path where torch keeps them."""

from ..layers.linear_loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from ..layers.loss import BCELoss as BCELoss
from ..layers.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from ..layers.loss import CrossEntropyLoss as CrossEntropyLoss
from ..layers.loss import CTCLoss as CTCLoss
from ..layers.loss import GaussianNLLLoss as GaussianNLLLoss
from ..layers.loss import HuberLoss as HuberLoss
from ..layers.loss import KLDivLoss as KLDivLoss
from ..layers.loss import L1Loss as L1Loss
from ..layers.loss import MSELoss as MSELoss
from ..layers.loss import NLLLoss as NLLLoss
from ..layers.loss import NLLLoss2d as NLLLoss2d
from ..layers.loss import PoissonNLLLoss as PoissonNLLLoss
from ..layers.loss import SmoothL1Loss as SmoothL1Loss
from ..layers.margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from ..layers.margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from ..layers.margin_loss import MarginRankingLoss as MarginRankingLoss
from ..layers.margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from ..layers.margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from ..layers.margin_loss import MultiMarginLoss as MultiMarginLoss
from ..layers.margin_loss import SoftMarginLoss as SoftMarginLoss
from ..layers.margin_loss import TripletMarginLoss as TripletMarginLoss
from ..layers.margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
