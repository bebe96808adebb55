"""Types of the public names, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
from typing import Any

from .core.affine import qscheme as qscheme
from .core.determinism import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .core.determinism import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from .core.determinism import use_deterministic_algorithms as use_deterministic_algorithms
from .core.device import device as device
from .core.device import get_default_device as get_default_device
from .core.device import set_default_device as set_default_device
from .core.dtype import bfloat16 as bfloat16
from .core.dtype import complex32 as complex32
from .core.dtype import complex64 as complex64
from .core.dtype import complex128 as complex128
from .core.dtype import dtype as dtype
from .core.dtype import finfo as finfo
from .core.dtype import float8_e4m3fn as float8_e4m3fn
from .core.dtype import float8_e5m2 as float8_e5m2
from .core.dtype import float16 as float16
from .core.dtype import float32 as float32
from .core.dtype import float64 as float64
from .core.dtype import get_default_dtype as get_default_dtype
from .core.dtype import iinfo as iinfo
from .core.dtype import int8 as int8
from .core.dtype import int16 as int16
from .core.dtype import int32 as int32
from .core.dtype import int64 as int64
from .core.dtype import set_default_dtype as set_default_dtype
from .core.dtype import uint8 as uint8
from .core.dtype import uint16 as uint16
from .core.dtype import uint32 as uint32
from .core.dtype import uint64 as uint64
from .core.dtype import bool_ as bool
from .core.layout import Size as Size
from .core.memory_format import channels_last as channels_last
from .core.memory_format import channels_last_3d as channels_last_3d
from .core.memory_format import contiguous_format as contiguous_format
from .core.memory_format import jagged as jagged
from .core.memory_format import layout as layout
from .core.memory_format import memory_format as memory_format
from .core.memory_format import preserve_format as preserve_format
from .core.memory_format import sparse_bsc as sparse_bsc
from .core.memory_format import sparse_bsr as sparse_bsr
from .core.memory_format import sparse_coo as sparse_coo
from .core.memory_format import sparse_csc as sparse_csc
from .core.memory_format import sparse_csr as sparse_csr
from .core.memory_format import strided as strided
from .core.promotion import can_cast as can_cast
from .core.promotion import promote_types as promote_types
from .surface.interchange import as_tensor as as_tensor
from .surface.interchange import asarray as asarray
from .surface.interchange import from_dlpack as from_dlpack
from .surface.interchange import from_numpy as from_numpy
from .surface.interchange import frombuffer as frombuffer
from . import autograd as autograd
from . import config as config
from . import cpu as cpu
from . import cuda as cuda
from . import fft as fft
from . import linalg as linalg
from . import random as random
from . import signal as signal
from . import special as special
from . import utils as utils
from .autograd import enable_grad as enable_grad
from .autograd import inference_mode as inference_mode
from .autograd import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd import is_anomaly_enabled as is_anomaly_enabled
from .autograd import is_grad_enabled as is_grad_enabled
from .autograd import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd import no_grad as no_grad
from .autograd import set_grad_enabled as set_grad_enabled
from .random import Generator as Generator
from .random import default_generator as default_generator
from .random import fork_rng as fork_rng
from .random import get_rng_state as get_rng_state
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import seed as seed
from .random import set_rng_state as set_rng_state
from .config import get_float32_matmul_precision as get_float32_matmul_precision
from .config import get_num_interop_threads as get_num_interop_threads
from .config import get_num_threads as get_num_threads
from .config import set_float32_matmul_precision as set_float32_matmul_precision
from .config import set_num_interop_threads as set_num_interop_threads
from .config import set_num_threads as set_num_threads
from .surface.printing import get_printoptions as get_printoptions
from .surface.printing import printoptions as printoptions
from .surface.printing import set_printoptions as set_printoptions
from .surface.custom import custom_op as custom_op
from .surface.custom import register_kernel as register_kernel
from .surface.explain import explain as explain
from .surface.explain import explanation as explanation
from .surface.disposal import DisposedError as DisposedError
from .surface.disposal import tidy as tidy
from .surface.fuse import fuse as fuse
from ._version import __version__ as __version__
float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
cfloat = complex64
chalf = complex32
cdouble = complex128
e = 2.718281828459045
pi = 3.141592653589793
inf: Any
nan: Any
newaxis = None
from . import accelerator as accelerator
from . import amp as amp
from . import ao as ao
from . import audio as audio
from . import compiler as compiler
from . import data as data
from . import distributed as distributed
from . import distributions as distributions
from . import func as func
from . import fx as fx
from . import futures as futures
from . import generation as generation
from . import glass as glass
from . import hub as hub
from . import io as io
from . import jit as jit
from . import library as library
from . import masked as masked
from . import models as models
from . import mps as mps
from . import mtia as mtia
from . import multiprocessing as multiprocessing
from . import nested as nested
from . import nn as nn
from . import np as np
from . import onnx as onnx
from . import optim as optim
from . import overrides as overrides
from . import pipelines as pipelines
from . import profiler as profiler
from . import quant as quant
from . import remote as remote
from . import sparse as sparse
from . import speech as speech
from . import studio as studio
from . import testing as testing
from . import text as text
from . import torch as torch
from . import train as train
from . import vision as vision
from . import webgpu as webgpu
from . import xpu as xpu
from .nn.compiled import compile as compile
from .func import vmap as vmap
from .pipelines import pipeline as pipeline
from .glass import debug as debug
from .glass import steps as steps
from .serialization import save as save
from .serialization import load as load
from .quant import quantize_ as quantize_
from .surface.quantized_functions import quantize_per_tensor as quantize_per_tensor
from .surface.quantized_functions import quantize_per_channel as quantize_per_channel
from .surface.quantized_functions import quantize_per_tensor_dynamic as quantize_per_tensor_dynamic
from .surface.quantized_functions import dequantize as dequantize
from .surface.quantized_functions import int_repr as int_repr
from .surface.quantized_functions import q_scale as q_scale
from .surface.quantized_functions import q_zero_point as q_zero_point
from .surface.quantized_functions import q_per_channel_scales as q_per_channel_scales
from .surface.quantized_functions import q_per_channel_zero_points as q_per_channel_zero_points
from .surface.quantized_functions import q_per_channel_axis as q_per_channel_axis
from .surface.quantized_functions import empty_quantized as empty_quantized
from .quant.fake import fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine
from .quant.fake import fake_quantize_per_channel_affine as fake_quantize_per_channel_affine
from .quant.fake import fused_moving_avg_obs_fake_quant as fused_moving_avg_obs_fake_quant
from .quant.pooling import quantized_max_pool1d as quantized_max_pool1d
from .quant.pooling import quantized_max_pool2d as quantized_max_pool2d
from .quant.pooling import quantized_max_pool3d as quantized_max_pool3d
from .quant.pooling import quantized_batch_norm as quantized_batch_norm
from .amp.autocast_mode import autocast as autocast
from .amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from .amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from .amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from .amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from .amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from .amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from .amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from .sparse import sparse_coo_tensor as sparse_coo_tensor
from .sparse import sparse_csr_tensor as sparse_csr_tensor
from .sparse import sparse_csc_tensor as sparse_csc_tensor
from .sparse import sparse_bsr_tensor as sparse_bsr_tensor
from .sparse import sparse_bsc_tensor as sparse_bsc_tensor
from .sparse import sparse_compressed_tensor as sparse_compressed_tensor
from .sparse import smm as smm
from .sparse import sspaddmm as sspaddmm
from .sparse import hspmm as hspmm
from .sparse import hsmm as hsmm
from .sparse import dsmm as dsmm
from .sparse import spmm as spmm
from .sparse import saddmm as saddmm
from .core.blocks import block_dtype as _block_dtype
absmax8_g128: _block_dtype
absmax8_g32: _block_dtype
absmax8_g64: _block_dtype
fp4_g128: _block_dtype
fp4_g32: _block_dtype
fp4_g64: _block_dtype
fp8_g128: _block_dtype
fp8_g32: _block_dtype
fp8_g64: _block_dtype
int2_g128: _block_dtype
int2_g32: _block_dtype
int2_g64: _block_dtype
int4_g128: _block_dtype
int4_g32: _block_dtype
int4_g64: _block_dtype
int8_g128: _block_dtype
int8_g32: _block_dtype
int8_g64: _block_dtype
iq1_m: _block_dtype
iq1_s: _block_dtype
iq2_s: _block_dtype
iq2_xs: _block_dtype
iq2_xxs: _block_dtype
iq3_s: _block_dtype
iq3_xxs: _block_dtype
iq4_nl: _block_dtype
iq4_xs: _block_dtype
mxfp4: _block_dtype
nf4_g128: _block_dtype
nf4_g32: _block_dtype
nf4_g64: _block_dtype
nvfp4: _block_dtype
q1_0: _block_dtype
q2_0: _block_dtype
q2_k: _block_dtype
q3_k: _block_dtype
q4_0: _block_dtype
q4_1: _block_dtype
q4_k: _block_dtype
q5_0: _block_dtype
q5_1: _block_dtype
q5_k: _block_dtype
q6_k: _block_dtype
q8_0: _block_dtype
q8_1: _block_dtype
q8_k: _block_dtype
tq1_0: _block_dtype
tq2_0: _block_dtype
from .core.affine import quantized_dtype as _quantized_dtype
qint8: _quantized_dtype
quint8: _quantized_dtype
qint32: _quantized_dtype
per_tensor_affine: qscheme
per_channel_affine: qscheme
per_tensor_symmetric: qscheme
per_channel_symmetric: qscheme
per_channel_affine_float_qparams: qscheme
from .tensor import Tensor as Tensor
from ._operators import hardshrink as hardshrink
from ._operators import matmul as matmul
from ._operators import add as add
from ._operators import sub as sub
from ._operators import subtract as subtract
from ._operators import mul as mul
from ._operators import multiply as multiply
from ._operators import div as div
from ._operators import divide as divide
from ._operators import true_divide as true_divide
from ._operators import floor_divide as floor_divide
from ._operators import remainder as remainder
from ._operators import fmod as fmod
from ._operators import neg as neg
from ._operators import negative as negative
from ._operators import addcmul as addcmul
from ._operators import addcdiv as addcdiv
from ._operators import lerp as lerp
from ._operators import hypot as hypot
from ._operators import gcd as gcd
from ._operators import lcm as lcm
from ._operators import relu as relu
from ._operators import bitwise_and as bitwise_and
from ._operators import bitwise_or as bitwise_or
from ._operators import bitwise_xor as bitwise_xor
from ._operators import bitwise_not as bitwise_not
from ._operators import bitwise_left_shift as bitwise_left_shift
from ._operators import bitwise_right_shift as bitwise_right_shift
from ._operators import maximum as maximum
from ._operators import minimum as minimum
from ._operators import fmax as fmax
from ._operators import fmin as fmin
from ._operators import cat as cat
from ._operators import concat as concat
from ._operators import concatenate as concatenate
from ._operators import stack as stack
from ._operators import eq as eq
from ._operators import ne as ne
from ._operators import not_equal as not_equal
from ._operators import lt as lt
from ._operators import less as less
from ._operators import le as le
from ._operators import less_equal as less_equal
from ._operators import gt as gt
from ._operators import greater as greater
from ._operators import ge as ge
from ._operators import greater_equal as greater_equal
from ._operators import isnan as isnan
from ._operators import isinf as isinf
from ._operators import isfinite as isfinite
from ._operators import isposinf as isposinf
from ._operators import isneginf as isneginf
from ._operators import logical_and as logical_and
from ._operators import logical_or as logical_or
from ._operators import logical_xor as logical_xor
from ._operators import logical_not as logical_not
from ._operators import transpose as transpose
from ._operators import swapdims as swapdims
from ._operators import t as t
from ._operators import squeeze as squeeze
from ._operators import unsqueeze as unsqueeze
from ._operators import complex as complex
from ._operators import polar as polar
from ._operators import angle as angle
from ._operators import sgn as sgn
from ._operators import view_as_real as view_as_real
from ._operators import select as select
from ._operators import diagonal as diagonal
from ._operators import tril as tril
from ._operators import triu as triu
from ._operators import sum as sum
from ._operators import nansum as nansum
from ._operators import mean as mean
from ._operators import prod as prod
from ._operators import logsumexp as logsumexp
from ._operators import all as all
from ._operators import any as any
from ._operators import count_nonzero as count_nonzero
from ._operators import exp as exp
from ._operators import exp2 as exp2
from ._operators import expm1 as expm1
from ._operators import log as log
from ._operators import log2 as log2
from ._operators import log10 as log10
from ._operators import log1p as log1p
from ._operators import logaddexp as logaddexp
from ._operators import logaddexp2 as logaddexp2
from ._operators import xlogy as xlogy
from ._operators import amax as amax
from ._operators import amin as amin
from ._operators import argmax as argmax
from ._operators import argmin as argmin
from ._operators import copysign as copysign
from ._operators import heaviside as heaviside
from ._operators import ldexp as ldexp
from ._operators import nextafter as nextafter
from ._operators import gather as gather
from ._operators import index_select as index_select
from ._operators import index_add as index_add
from ._operators import index_copy as index_copy
from ._operators import index_fill as index_fill
from ._operators import take as take
from ._operators import put as put
from ._operators import sqrt as sqrt
from ._operators import rsqrt as rsqrt
from ._operators import reciprocal as reciprocal
from ._operators import square as square
from ._operators import roll as roll
from ._operators import constant_pad_nd as constant_pad_nd
from ._operators import abs as abs
from ._operators import absolute as absolute
from ._operators import sign as sign
from ._operators import signbit as signbit
from ._operators import floor as floor
from ._operators import ceil as ceil
from ._operators import trunc as trunc
from ._operators import fix as fix
from ._operators import frac as frac
from ._operators import round as round
from ._operators import cumsum as cumsum
from ._operators import cumprod as cumprod
from ._operators import logcumsumexp as logcumsumexp
from ._operators import scatter_add as scatter_add
from ._operators import select_scatter as select_scatter
from ._operators import slice_scatter as slice_scatter
from ._operators import diagonal_scatter as diagonal_scatter
from ._operators import erf as erf
from ._operators import erfc as erfc
from ._operators import erfinv as erfinv
from ._operators import sigmoid as sigmoid
from ._operators import logit as logit
from ._operators import lgamma as lgamma
from ._operators import digamma as digamma
from ._operators import polygamma as polygamma
from ._operators import mvlgamma as mvlgamma
from ._operators import igamma as igamma
from ._operators import igammac as igammac
from ._operators import i0 as i0
from ._operators import sin as sin
from ._operators import cos as cos
from ._operators import tan as tan
from ._operators import asin as asin
from ._operators import arcsin as arcsin
from ._operators import acos as acos
from ._operators import arccos as arccos
from ._operators import atan as atan
from ._operators import arctan as arctan
from ._operators import sinh as sinh
from ._operators import cosh as cosh
from ._operators import tanh as tanh
from ._operators import asinh as asinh
from ._operators import arcsinh as arcsinh
from ._operators import acosh as acosh
from ._operators import arccosh as arccosh
from ._operators import atanh as atanh
from ._operators import arctanh as arctanh
from ._operators import atan2 as atan2
from ._operators import arctan2 as arctan2
from ._operators import sinc as sinc
from ._operators import deg2rad as deg2rad
from ._operators import rad2deg as rad2deg
from ._operators import adaptive_max_pool1d as adaptive_max_pool1d
from ._operators import mm as mm
from ._operators import bmm as bmm
from ._operators import mv as mv
from ._operators import dot as dot
from ._operators import vdot as vdot
from ._operators import inner as inner
from ._operators import outer as outer
from ._operators import ger as ger
from ._operators import kron as kron
from ._operators import addmm as addmm
from ._operators import addmv as addmv
from ._operators import baddbmm as baddbmm
from ._operators import addbmm as addbmm
from ._operators import addr as addr
from ._operators import is_tensor as is_tensor
from ._operators import is_floating_point as is_floating_point
from ._operators import is_complex as is_complex
from ._operators import is_signed as is_signed
from ._operators import is_conj as is_conj
from ._operators import is_neg as is_neg
from ._operators import is_inference as is_inference
from ._operators import is_nonzero as is_nonzero
from ._operators import is_same_size as is_same_size
from ._operators import numel as numel
from ._operators import result_type as result_type
from ._operators import rsub as rsub
from ._operators import positive as positive
from ._operators import bernoulli as bernoulli
from ._operators import multinomial as multinomial
from ._operators import normal as normal
from ._operators import poisson as poisson
from ._operators import binomial as binomial
from ._operators import prelu as prelu
from ._operators import rrelu as rrelu
from ._operators import rrelu_ as rrelu_
from ._operators import dropout as dropout
from ._operators import dropout_ as dropout_
from ._operators import alpha_dropout as alpha_dropout
from ._operators import alpha_dropout_ as alpha_dropout_
from ._operators import feature_dropout as feature_dropout
from ._operators import feature_dropout_ as feature_dropout_
from ._operators import feature_alpha_dropout as feature_alpha_dropout
from ._operators import feature_alpha_dropout_ as feature_alpha_dropout_
from ._operators import batch_norm as batch_norm
from ._operators import instance_norm as instance_norm
from ._operators import clamp as clamp
from ._operators import clip as clip
from ._operators import clamp_ as clamp_
from ._operators import clip_ as clip_
from ._operators import clamp_min as clamp_min
from ._operators import clamp_min_ as clamp_min_
from ._operators import clamp_max as clamp_max
from ._operators import clamp_max_ as clamp_max_
from ._operators import nan_to_num as nan_to_num
from ._operators import nan_to_num_ as nan_to_num_
from ._operators import chain_matmul as chain_matmul
from ._operators import clone as clone
from ._operators import hstack as hstack
from ._operators import vstack as vstack
from ._operators import row_stack as row_stack
from ._operators import dstack as dstack
from ._operators import column_stack as column_stack
from ._operators import block_diag as block_diag
from ._operators import isreal as isreal
from ._operators import isclose as isclose
from ._operators import allclose as allclose
from ._operators import equal as equal
from ._operators import isin as isin
from ._operators import reshape as reshape
from ._operators import swapaxes as swapaxes
from ._operators import permute as permute
from ._operators import movedim as movedim
from ._operators import moveaxis as moveaxis
from ._operators import flatten as flatten
from ._operators import unflatten as unflatten
from ._operators import ravel as ravel
from ._operators import adjoint as adjoint
from ._operators import conj_physical as conj_physical
from ._operators import conj_physical_ as conj_physical_
from ._operators import conj as conj
from ._operators import resolve_conj as resolve_conj
from ._operators import resolve_neg as resolve_neg
from ._operators import real as real
from ._operators import imag as imag
from ._operators import view_as_complex as view_as_complex
from ._operators import cov as cov
from ._operators import corrcoef as corrcoef
from ._operators import zeros as zeros
from ._operators import ones as ones
from ._operators import full as full
from ._operators import empty as empty
from ._operators import empty_strided as empty_strided
from ._operators import empty_permuted as empty_permuted
from ._operators import eye as eye
from ._operators import scalar_tensor as scalar_tensor
from ._operators import tensor as tensor
from ._operators import narrow as narrow
from ._operators import as_strided as as_strided
from ._operators import diag_embed as diag_embed
from ._operators import diag as diag
from ._operators import diagflat as diagflat
from ._operators import trace as trace
from ._operators import cosine_similarity as cosine_similarity
from ._operators import pairwise_distance as pairwise_distance
from ._operators import pdist as pdist
from ._operators import einsum as einsum
from ._operators import tensordot as tensordot
from ._operators import nanmean as nanmean
from ._operators import norm as norm
from ._operators import dist as dist
from ._operators import renorm as renorm
from ._operators import embedding as embedding
from ._operators import embedding_renorm_ as embedding_renorm_
from ._operators import aminmax as aminmax
from ._operators import max as max
from ._operators import min as min
from ._operators import fill as fill
from ._operators import fill_ as fill_
from ._operators import zero_ as zero_
from ._operators import gradient as gradient
from ._operators import frexp as frexp
from ._operators import cross as cross
from ._operators import cdist as cdist
from ._operators import group_norm as group_norm
from ._operators import take_along_dim as take_along_dim
from ._operators import index_reduce as index_reduce
from ._operators import index_put as index_put
from ._operators import index_put_ as index_put_
from ._operators import unravel_index as unravel_index
from ._operators import empty_like as empty_like
from ._operators import zeros_like as zeros_like
from ._operators import ones_like as ones_like
from ._operators import full_like as full_like
from ._operators import triangular_solve as triangular_solve
from ._operators import cholesky as cholesky
from ._operators import cholesky_inverse as cholesky_inverse
from ._operators import cholesky_solve as cholesky_solve
from ._operators import det as det
from ._operators import slogdet as slogdet
from ._operators import logdet as logdet
from ._operators import svd as svd
from ._operators import qr as qr
from ._operators import geqrf as geqrf
from ._operators import orgqr as orgqr
from ._operators import ormqr as ormqr
from ._operators import svd_lowrank as svd_lowrank
from ._operators import pca_lowrank as pca_lowrank
from ._operators import lu as lu
from ._operators import lu_unpack as lu_unpack
from ._operators import lu_solve as lu_solve
from ._operators import pinverse as pinverse
from ._operators import inverse as inverse
from ._operators import matrix_power as matrix_power
from ._operators import matrix_exp as matrix_exp
from ._operators import masked_select as masked_select
from ._operators import masked_scatter as masked_scatter
from ._operators import nonzero as nonzero
from ._operators import argwhere as argwhere
from ._operators import layer_norm as layer_norm
from ._operators import pow as pow
from ._operators import float_power as float_power
from ._operators import rand as rand
from ._operators import randn as randn
from ._operators import randint as randint
from ._operators import randperm as randperm
from ._operators import rand_like as rand_like
from ._operators import randn_like as randn_like
from ._operators import randint_like as randint_like
from ._operators import arange as arange
from ._operators import linspace as linspace
from ._operators import logspace as logspace
from ._operators import tril_indices as tril_indices
from ._operators import triu_indices as triu_indices
from ._operators import meshgrid as meshgrid
from ._operators import cartesian_prod as cartesian_prod
from ._operators import combinations as combinations
from ._operators import vander as vander
from ._operators import flip as flip
from ._operators import fliplr as fliplr
from ._operators import flipud as flipud
from ._operators import rot90 as rot90
from ._operators import lstm as lstm
from ._operators import gru as gru
from ._operators import rnn_tanh as rnn_tanh
from ._operators import rnn_relu as rnn_relu
from ._operators import lstm_cell as lstm_cell
from ._operators import gru_cell as gru_cell
from ._operators import rnn_tanh_cell as rnn_tanh_cell
from ._operators import rnn_relu_cell as rnn_relu_cell
from ._operators import broadcast_to as broadcast_to
from ._operators import broadcast_shapes as broadcast_shapes
from ._operators import broadcast_tensors as broadcast_tensors
from ._operators import tile as tile
from ._operators import repeat_interleave as repeat_interleave
from ._operators import atleast_1d as atleast_1d
from ._operators import atleast_2d as atleast_2d
from ._operators import atleast_3d as atleast_3d
from ._operators import abs_ as abs_
from ._operators import absolute_ as absolute_
from ._operators import cummax as cummax
from ._operators import cummin as cummin
from ._operators import diff as diff
from ._operators import trapezoid as trapezoid
from ._operators import trapz as trapz
from ._operators import cumulative_trapezoid as cumulative_trapezoid
from ._operators import scatter as scatter
from ._operators import scatter_reduce as scatter_reduce
from ._operators import as_strided_scatter as as_strided_scatter
from ._operators import searchsorted as searchsorted
from ._operators import bucketize as bucketize
from ._operators import bincount as bincount
from ._operators import histc as histc
from ._operators import histogram as histogram
from ._operators import histogramdd as histogramdd
from ._operators import where as where
from ._operators import masked_fill as masked_fill
from ._operators import softmax as softmax
from ._operators import log_softmax as log_softmax
from ._operators import sort as sort
from ._operators import argsort as argsort
from ._operators import msort as msort
from ._operators import topk as topk
from ._operators import kthvalue as kthvalue
from ._operators import unique as unique
from ._operators import unique_consecutive as unique_consecutive
from ._operators import stft as stft
from ._operators import istft as istft
from ._operators import split_with_sizes as split_with_sizes
from ._operators import split as split
from ._operators import chunk as chunk
from ._operators import unsafe_split as unsafe_split
from ._operators import unsafe_split_with_sizes as unsafe_split_with_sizes
from ._operators import unsafe_chunk as unsafe_chunk
from ._operators import unbind as unbind
from ._operators import tensor_split as tensor_split
from ._operators import hsplit as hsplit
from ._operators import vsplit as vsplit
from ._operators import dsplit as dsplit
from ._operators import var as var
from ._operators import std as std
from ._operators import var_mean as var_mean
from ._operators import std_mean as std_mean
from ._operators import median as median
from ._operators import nanmedian as nanmedian
from ._operators import mode as mode
from ._operators import quantile as quantile
from ._operators import nanquantile as nanquantile
from ._operators import narrow_copy as narrow_copy
from ._operators import view_copy as view_copy
from ._operators import expand_copy as expand_copy
from ._operators import permute_copy as permute_copy
from ._operators import transpose_copy as transpose_copy
from ._operators import t_copy as t_copy
from ._operators import squeeze_copy as squeeze_copy
from ._operators import unsqueeze_copy as unsqueeze_copy
from ._operators import select_copy as select_copy
from ._operators import slice_copy as slice_copy
from ._operators import diagonal_copy as diagonal_copy
from ._operators import as_strided_copy as as_strided_copy
from ._operators import unfold_copy as unfold_copy
from ._operators import alias_copy as alias_copy
from ._operators import detach_copy as detach_copy
from ._operators import split_copy as split_copy
from ._operators import split_with_sizes_copy as split_with_sizes_copy
from ._operators import unbind_copy as unbind_copy
from ._operators import hann_window as hann_window
from ._operators import hamming_window as hamming_window
from ._operators import blackman_window as blackman_window
from ._operators import bartlett_window as bartlett_window
from ._operators import kaiser_window as kaiser_window
from ._operators import as_strided_ as as_strided_
from ._operators import resize_as_ as resize_as_

def __getattr__(name: str) -> Any: ...
