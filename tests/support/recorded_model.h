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
    const physics::RigidState& x = measured.measured;
    found.next = {x.position.clone(), x.orientation.clone(), x.velocity.clone(), x.angular_velocity.clone()};
    found.status = torch::zeros({measured.longest(), measured.count()}, torch::kChar);
  }

  physics::RigidSolution roll_out(const physics::RigidState& /*start*/, std::int64_t /*steps*/) const override {
    return found;
  }
  std::string torchscript_bytes() const override { return ""; }
};

}  // namespace lcp::training
