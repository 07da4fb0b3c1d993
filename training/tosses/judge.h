// A model judged by tosses in all protocols.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/files.h"
#include "tosses/model.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// The protocols by their names in metrics.json.
constexpr const char* kProtocols[] = {"whole", "from_first_contact", "windows_80"};

struct Judgement {
  nlohmann::json
      metrics;           ///< the summaries of the protocols by name; `unsolved`, pieces with an unsolved step; `size_m`
  Table errors;          ///< of each piece: protocol, its place in kProtocols; and its errors
  Table errors_in_time;  ///< of each protocol and step: time, s, the number of pieces that have it, their mean errors
};

/// form: of the body that was tossed. gravity: m/s^2, of their flights. rate: samples per second.
Judgement judge(const TossModel& model, const std::vector<Toss>& tosses, const BodyForm& form, double gravity,
                double rate);

/// The errors in the protocols, as text for people.
std::string summary_text(const nlohmann::json& metrics);

}  // namespace lcp::training
