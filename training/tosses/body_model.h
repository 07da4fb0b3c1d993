// A body whose parameters are learned from tosses.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lcp/identification/motion_model.h"
#include "tosses/model.h"

namespace lcp::training {

class BodyModel : public TossModel {
 public:
  /// motion: of one body on fixed planes. contact: the name of its formulation. rate: samples per second.
  BodyModel(identification::MotionModel motion, std::string contact, double rate);

  torch::Tensor center() const override;
  physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const override;
  std::string torchscript_bytes() const override;

  const identification::MotionModel& motion() const { return motion_; }

  /// The names of the learned values, v of them, and the values, [v].
  const std::vector<std::string>& names() const { return names_; }
  torch::Tensor values() const { return values_at(raw); }

  /// Those of other raw numbers, [..., p].
  torch::Tensor values_at(const torch::Tensor& numbers) const { return motion_.values_at(numbers); }

  torch::Tensor raw;  ///< [p], what is learned: the numbers of the motion, which begin at 0

 private:
  identification::MotionModel motion_;
  std::string contact_;
  double rate_;
  std::vector<std::string> names_;
};

}  // namespace lcp::training
