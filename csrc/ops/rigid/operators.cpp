#include "ops/rigid/operators.h"

#include <c10/util/Exception.h>

namespace lcp::ops {

void check_rigid(const Call& call) {
  TORCH_CHECK(call.first().scalar_type() == at::kDouble, "mass must be float64; got ", call.first().scalar_type());
  const auto pairs = std::get<c10::SymIntArrayRef>(call.value("pairs"));
  const c10::SymInt &bodies = call.size('b'), &balls = call.size('p'), &planes = call.size('h');
  TORCH_CHECK(call.size('c') * 4 == static_cast<std::int64_t>(pairs.size()),
              "pairs must have four numbers for each of mu's c = ", call.size('c'), " contacts; got ", pairs.size());
  for (std::size_t k = 0; k < pairs.size(); k += 4) {
    const auto check_range = [&](const char* what, const c10::SymInt& x, std::int64_t first, const c10::SymInt& end) {
      TORCH_CHECK(x >= first && x < end, "pair ", k / 4, " names ", what, " ", x, " of ", end);
    };
    check_range("body", pairs[k], 0, bodies);
    check_range("ball", pairs[k + 1], 0, balls);
    check_range("body", pairs[k + 2], -1, bodies);
    check_range("plane or ball", pairs[k + 3], 0, planes + balls);
    TORCH_CHECK(pairs[k] != pairs[k + 2] && (pairs[k + 2] >= 0 || pairs[k + 3] < planes), "pair ", k / 4,
                " must be of a body and another one, or a fixed plane");
  }
}

}  // namespace lcp::ops
