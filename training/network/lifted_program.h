// Motion learned as one program whose unknowns are the parameters of a network and the LCP of each sample.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 4.
#pragma once

#include <torch/types.h>

#include "identification/bilinear_program.h"
#include "lcp/nn/lcp_network.h"
#include "network/motion.h"

namespace lcp::training {

/// The optimality conditions of the inner problem as constraints of the outer one [Notes, 4]:
///
///   minimise    mean_i |f(x_i) + G z_i - y_i|^2   over the parameters and all z_i
///   subject to  0 <= z_i perp M z_i + q(x_i) >= 0
///
/// with constant G and affine q, and f absent, constant or affine. M = L L' + epsilon I + U - U' is positive definite,
/// so that each z_i is the only solution. With s_i = L' z_i the constraints are bilinear.
///   theta: [size()], where the parameters start; z starts at the solutions there. motion: in the units of the network.
BilinearProgram lifted_program(const nn::LcpNetwork& network, const torch::Tensor& theta, const Motion& motion);

/// The parameters that solve lifted_program, [size()].
torch::Tensor parameters_of(const MpecSolution& solution, const nn::LcpNetwork& network);

}  // namespace lcp::training
