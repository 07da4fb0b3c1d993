#include "tosses/judge.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>

namespace lcp::training {

using torch::Tensor;

Judgement judge(const Cube& cube, const CubeContact& contact, const std::vector<Toss>& tosses, double side,
                double rate) {
  constexpr std::int64_t kWindow = 80, kStride = 40;
  const c10::NoGradGuard no_grad;
  Judgement found{{}, {{"protocol", "position_error_m", "rotation_error_rad", "penetration_m"}, {{}, {}, {}, {}}}};
  std::int64_t unsolved = 0;
  const auto add = [&](std::size_t protocol, const Segments& measured) {
    const auto rolled = roll_out(cube, contact, 1 / rate, measured.start, measured.longest());
    const Tensor solved = (rolled.status == 0).all(0).nonzero().squeeze(-1);
    const Segments judged = measured.at(solved);
    const auto of_judged = [&](const Tensor& x) { return x.squeeze(-2).index_select(1, solved); };
    const TossErrors errors =
        errors_of(judged, of_judged(rolled.next.position), of_judged(rolled.next.orientation), side);
    found.metrics[kProtocols[protocol]] = summary_of(errors, side);
    found.metrics[kProtocols[protocol]]["pieces"] = measured.count();
    unsolved += measured.count() - judged.count();
    for (std::int64_t k = 0; k < judged.count(); ++k) {
      const auto entry = [&](const Tensor& x) { return x[k].item<double>(); };
      found.errors.add_row(
          {static_cast<double>(protocol), entry(errors.position), entry(errors.rotation), entry(errors.penetration)});
    }
  };
  add(0, whole_tosses(tosses));
  add(1, from_first_contact(tosses, side, cube.gravity.item<double>(), rate));
  if (const auto pieces = windows(tosses, kWindow, kStride)) add(2, *pieces);
  found.metrics["unsolved"] = unsolved;
  return found;
}

}  // namespace lcp::training
