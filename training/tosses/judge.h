// A cube judged by tosses in all protocols.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "run/files.h"
#include "tosses/cube.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// The protocols by their names in metrics.json.
constexpr const char* kProtocols[] = {"whole", "from_first_contact", "windows_80"};

struct Judgement {
  nlohmann::json metrics;  ///< the summaries of the protocols by name, and `unsolved`, pieces with an unsolved step
  Table errors;            ///< of each piece: protocol, its place in kProtocols; and its errors
};

/// side: m, of the cube that the tosses were measured with.
Judgement judge(const Cube& cube, const CubeContact& contact, const std::vector<Toss>& tosses, double side,
                double rate);

}  // namespace lcp::training
