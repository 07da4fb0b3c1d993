#include "tosses/judge.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <string>
#include <utility>

#include "run/text.h"

namespace lcp::training {

using torch::Tensor;

Judgement judge(const TossModel& model, const std::vector<Toss>& tosses, const BodyForm& form, double gravity,
                double rate) {
  constexpr std::int64_t kWindow = 80, kStride = 40;
  const c10::NoGradGuard no_grad;
  const std::vector<std::string> names = {"position_error_m", "rotation_error_rad", "penetration_m"};
  Judgement found;
  found.errors.add("protocol", {});
  found.errors_in_time.add("protocol", {});
  found.errors_in_time.add("time", {});
  found.errors_in_time.add("pieces", {});
  for (const std::string& name : names) {
    found.errors.add(name, {});
    found.errors_in_time.add(name, {});
  }
  std::int64_t unsolved = 0;
  const auto add = [&](std::size_t protocol, const Segments& measured) {
    const auto rolled = model.roll_out(measured.start, measured.longest());
    const Tensor exists_in_all = measured.exists().unsqueeze(-1);
    const auto finite = [&](const Tensor& x) { return (x.squeeze(-2).isfinite() | ~exists_in_all).all(-1).all(0); };
    const Tensor good = (rolled.status == 0).all(0) & finite(rolled.next.position) & finite(rolled.next.orientation);
    const Tensor solved = good.nonzero().squeeze(-1);
    const Segments judged = measured.at(solved);
    const auto of_judged = [&](const Tensor& x) { return x.index_select(1, solved); };
    if (judged.count() == 0) {
      found.metrics[kProtocols[protocol]] = {{"pieces", measured.count()}, {"judged", 0}};
      unsolved += measured.count();
      return;
    }
    const TossErrors of_steps =
        step_errors(judged, {of_judged(rolled.next.position), of_judged(rolled.next.orientation), {}, {}}, form);
    const TossErrors errors = mean_errors(judged, of_steps);
    found.metrics[kProtocols[protocol]] = summary_of(errors, form.size);
    found.metrics[kProtocols[protocol]]["pieces"] = measured.count();
    found.metrics[kProtocols[protocol]]["judged"] = judged.count();
    unsolved += measured.count() - judged.count();
    for (std::int64_t k = 0; k < judged.count(); ++k) {
      const auto entry = [&](const Tensor& x) { return x[k].item<double>(); };
      found.errors.add_row(
          {static_cast<double>(protocol), entry(errors.position), entry(errors.rotation), entry(errors.penetration)});
    }
    const Tensor exists = judged.exists(), count = exists.sum(1);
    for (std::int64_t step = 0; step < judged.longest(); ++step) {
      const auto mean = [&](const Tensor& x) {
        return (at::where(exists[step], x[step], 0).sum() / count[step]).item<double>();
      };
      found.errors_in_time.add_row({static_cast<double>(protocol), static_cast<double>(step + 1) / rate,
                                    static_cast<double>(count[step].item<std::int64_t>()), mean(of_steps.position),
                                    mean(of_steps.rotation), mean(of_steps.penetration)});
    }
  };
  add(0, whole_tosses(tosses));
  add(1, from_first_contact(tosses, form, gravity, model.center(), rate));
  if (const auto pieces = windows(tosses, kWindow, kStride)) add(2, *pieces);
  found.metrics["unsolved"] = unsolved;
  found.metrics["size_m"] = form.size;
  return found;
}

std::string summary_text(const nlohmann::json& metrics) {
  std::string text;
  for (const auto& [name, label] :
       {std::pair(kProtocols[0], "whole tosses"), std::pair(kProtocols[1], "from first contact"),
        std::pair(kProtocols[2], "windows of 80 steps")}) {
    if (!metrics.contains(name)) {
      text += padded(label, 24) + "no toss is as long\n";
      continue;
    }
    const auto& errors = metrics[name];
    if (errors["judged"] == 0) {
      text += padded(label, 24) + "none is solved\n";
      continue;
    }
    const auto number = [&](const char* key) { return short_number(errors[key].get<double>()); };
    text += padded(label, 24) + number("position_error_m") + " m, " + number("position_error_percent") +
            " % of the size, " + number("rotation_error_deg") + " degrees\n";
  }
  if (metrics["unsolved"] != 0) {
    text += "Of the pieces of tosses " + metrics["unsolved"].dump() + " are not solved, and not part of the errors.\n";
  }
  return text;
}

}  // namespace lcp::training
