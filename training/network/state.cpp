#include "network/state.h"

#include <torch/types.h>

#include <string>

namespace lcp::training {
namespace {

using nlohmann::json;
using nn::Dependence;
using torch::Tensor;

std::string name_of(const char* kind, std::int64_t k, const std::string& part, std::size_t i) {
  return std::string(kind) + "." + std::to_string(k) + "." + part + "." + std::to_string(i);
}

std::string box_prefix(std::int64_t family) { return "black_box." + std::to_string(family) + "."; }

}  // namespace

void NetworkState::save(Checkpoint& checkpoint) const {
  json all_rounds = json::array(), all_boxes = json::array();
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    json networks = json::array();
    for (std::size_t i = 0; i < rounds[k].best.size(); ++i) {
      const learning::NetworkCandidate& c = rounds[k].best[i];
      networks.push_back({{"unknowns", c.options.unknowns()}, {"network", c.options.q() == Dependence::kNetwork}});
      const auto number = static_cast<std::int64_t>(k);
      checkpoint.tensors[name_of("round", number, "theta", i)] = c.theta;
      // As a tensor, since JSON has no infinity.
      checkpoint.tensors[name_of("round", number, "errors", i)] =
          torch::tensor({c.training_error, c.validation_error, c.rest, c.coupled ? 1. : 0.}, torch::kDouble);
    }
    all_rounds.push_back({{"starts", rounds[k].starts}, {"networks", networks}});
  }
  for (const auto& [family, box] : black_boxes.trained) {
    const Checkpoint saved = box.save();
    all_boxes.push_back({{"family", family}, {"black_box", saved.state}});
    for (const auto& [name, tensor] : saved.tensors) checkpoint.tensors[box_prefix(family) + name] = tensor;
  }
  checkpoint.state["rounds"] = all_rounds;
  checkpoint.state["black_boxes"] = all_boxes;
  checkpoint.state["search_seconds"] = search_seconds;
  checkpoint.state["black_box_seconds"] = black_boxes.seconds;
}

NetworkState NetworkState::load(const Checkpoint& checkpoint, const nn::LcpNetworkOptions& parts) {
  const json& state = checkpoint.state;
  const auto tensor = [&](const char* kind, std::int64_t k, const std::string& part, std::size_t i) {
    return checkpoint.tensors.at(name_of(kind, k, part, i)).to(torch::kDouble);
  };
  NetworkState all;
  for (std::size_t k = 0; k < state.at("rounds").size(); ++k) {
    const json& saved = state["rounds"][k];
    learning::NetworkRound round{saved.at("starts").get<std::int64_t>(), {}};
    for (std::size_t i = 0; i < saved.at("networks").size(); ++i) {
      const json& entry = saved["networks"][i];
      const auto number = static_cast<std::int64_t>(k);
      const Tensor errors = tensor("round", number, "errors", i);
      TORCH_CHECK(errors.numel() == 4, "errors must be [4]; got ", errors.sizes());
      const auto error = [&](std::int64_t which) { return errors[which].item<double>(); };
      nn::LcpNetworkOptions options = parts;
      options.unknowns(entry.at("unknowns").get<std::int64_t>());
      options.q(entry.at("network").get<bool>() ? Dependence::kNetwork : Dependence::kAffine);
      const Tensor theta = tensor("round", number, "theta", i);
      nn::LcpNetwork(options)->set_theta(theta);  // throws where the sizes differ
      round.best.push_back({options, theta, error(0), error(1), error(2), error(3) != 0});
    }
    TORCH_CHECK(!round.best.empty(), "a round is empty");
    all.rounds.push_back(round);
  }
  for (const json& entry : state.at("black_boxes")) {
    const auto family = entry.at("family").get<std::int64_t>();
    Checkpoint saved{entry.at("black_box"), {}};
    const std::string prefix = box_prefix(family);
    for (const auto& [name, found] : checkpoint.tensors) {
      if (name.starts_with(prefix)) saved.tensors[name.substr(prefix.size())] = found;
    }
    const BlackBox box = BlackBox::load(saved);
    box.predict(torch::zeros({1, parts.inputs()}, torch::kDouble));  // throws where the sizes differ
    all.black_boxes.trained.emplace(family, box);
  }
  all.search_seconds = state.at("search_seconds");
  all.black_boxes.seconds = state.at("black_box_seconds");
  return all;
}

}  // namespace lcp::training
