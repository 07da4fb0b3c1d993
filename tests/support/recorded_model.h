// A model of tosses that predicts what it was given, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "tosses/model.h"
#include "tosses/protocols.h"

namespace lcp::training {

struct RecordedModel : TossModel {
  physics::RigidSolution found;  ///< [T, b, 1, ...]

  explicit RecordedModel(const Segments& measured) {
    const auto body = [](const torch::Tensor& x) { return x.unsqueeze(-2).clone(); };
    found.next = {body(measured.position), body(measured.orientation), body(measured.velocity),
                  body(measured.angular_velocity)};
    found.status = torch::zeros({measured.longest(), measured.count()}, torch::kChar);
  }

  physics::RigidSolution roll_out(const physics::RigidState& /*start*/, std::int64_t /*steps*/) const override {
    return found;
  }
  std::string torchscript_bytes() const override { return ""; }
};

}  // namespace lcp::training
