// Everything that needs only tensors. The modules of lcp/nn/ derive from torch::nn::Module, which takes many times
// longer to compile, and are included by name. Link TorchLCP::torchlcp for the operators, and TorchLCP::physics,
// TorchLCP::learning and TorchLCP::identification for the folders of these names.
#pragma once

#include "lcp/certify.h"
#include "lcp/directional_derivative.h"
#include "lcp/identification/least_squares.h"
#include "lcp/identification/particle_filter.h"
#include "lcp/identification/uncertainty.h"
#include "lcp/learning/bilevel_loss.h"
#include "lcp/learning/direct_loss.h"
#include "lcp/learning/identifiability.h"
#include "lcp/learning/linear_program.h"
#include "lcp/learning/noise_study.h"
#include "lcp/learning/penalty_loss.h"
#include "lcp/physics/falling_block.h"
#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/point_mass.h"
#include "lcp/physics/problem.h"
#include "lcp/physics/sliding_block.h"
#include "lcp/physics/tripod.h"
#include "lcp/solve.h"
#include "lcp/solve_mixed.h"
#include "lcp/status.h"
#include "lcp/version.h"
