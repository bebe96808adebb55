// All block formats. Their names are those of the dtypes, in capitals; their numbers are places in this list, which
// Python reads from the module (native/quantized.py).
#pragma once
#include "quantized_formats.h"
#include "quantized_groups.h"
#include "quantized_points.h"

#define VT_GROUPS(F, KIND) F(KIND##_G32) F(KIND##_G64) F(KIND##_G128)
#define VT_BLOCK_FORMATS(F)                                                                       \
  F(Q4_0) F(Q4_1) F(Q5_0) F(Q5_1) F(Q8_0) F(Q8_1) F(Q2_K) F(Q3_K) F(Q4_K) F(Q5_K) F(Q6_K) F(Q8_K) \
  F(IQ4_NL) F(IQ4_XS) F(MXFP4) F(NVFP4) F(TQ1_0) F(TQ2_0) F(Q1_0) F(Q2_0)                         \
  F(IQ1_S) F(IQ1_M) F(IQ2_XXS) F(IQ2_XS) F(IQ2_S) F(IQ3_XXS) F(IQ3_S)                             \
  VT_GROUPS(F, INT2) VT_GROUPS(F, INT4) VT_GROUPS(F, INT8) VT_GROUPS(F, ABSMAX8)                  \
  VT_GROUPS(F, NF4) VT_GROUPS(F, FP4) VT_GROUPS(F, FP8)
