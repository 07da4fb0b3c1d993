// The algorithms of lcp::solve.
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lcp {

enum class Method {
  kAuto,         ///< "auto": several algorithms in turn, each answer verified; see docs/solvers.md
  kLemke,        ///< "lemke": one run of Lemke's method [CPS, alg. 4.4.5] with the covering vector d = e
  kEnumeration,  ///< "enumeration": complementary bases, one after another, 2^n of them at worst
  kNewtonMin,    ///< "newton_min": Newton's method on min(z, w) = 0, for positive definite and P-matrices
  kCentralPath,  ///< "central_path": the path z_i w_i = kappa, followed towards 0, where its basis is solved
};

/// The names by which the operators of Python and TorchScript take the methods, in the order of the enum.
inline constexpr std::array kMethodNames = {"auto", "lemke", "enumeration", "newton_min", "central_path"};

constexpr const char* method_name(Method method) { return kMethodNames[static_cast<std::size_t>(method)]; }

/// The method of this name, if there is one.
constexpr std::optional<Method> method_named(std::string_view name) {
  for (std::size_t k = 0; k < kMethodNames.size(); ++k) {
    if (name == kMethodNames[k]) return static_cast<Method>(k);
  }
  return std::nullopt;
}

}  // namespace lcp
