// The algorithms of lcp::solve.
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

namespace lcp {

enum class Method {
  kAuto,         ///< "auto": several algorithms in turn, each answer verified; see docs/solvers.md
  kLemke,        ///< "lemke": one run of Lemke's method [CPS, alg. 4.4.5] with the covering vector d = e
  kEnumeration,  ///< "enumeration": complementary bases, one after another, 2^n of them at worst
  kNewtonMin,    ///< "newton_min": Newton's method on min(z, w) = 0, for positive definite and P-matrices
  kCentralPath,  ///< "central_path": the path z_i w_i = kappa, followed towards 0, where its basis is solved
};

/// The name of a method in the operators of Python and TorchScript.
constexpr const char* method_name(Method method) {
  constexpr const char* kNames[] = {"auto", "lemke", "enumeration", "newton_min", "central_path"};
  return kNames[static_cast<int>(method)];
}

}  // namespace lcp
