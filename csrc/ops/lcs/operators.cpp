#include "ops/lcs/operators.h"

#include <c10/util/Exception.h>

namespace lcp::ops {

void check_cone(const Call& call) {
  const auto* const given = std::get_if<c10::SymIntArrayRef>(&call.value("cone"));
  if (given == nullptr || given->empty()) return;
  const c10::SymIntArrayRef cone = *given;
  const c10::SymInt& n = call.size('n');
  TORCH_CHECK(n == static_cast<std::int64_t>(cone.size()), "cone must have one number for each of M's n = ", n,
              " pairs; got ", cone);
  for (const c10::SymInt& pair : cone) {
    TORCH_CHECK(pair >= -1 && pair < n, "cone must be of -1..n - 1 with M's n = ", n, "; got ", cone);
  }
}

}  // namespace lcp::ops
