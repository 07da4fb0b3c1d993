// A tossed body of any form, from a file.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lcp/physics/rigid_scene.h"

namespace lcp::training {

/// The form by which errors and penetrations of a body are measured, with the recorded point as origin.
struct BodyForm {
  /// A cube, whose centre is recorded. side: m.
  BodyForm(double side);  // NOLINT(google-explicit-constructor): a number is the side of a cube
  /// Balls: centers [p, 3] and radii [p], m.
  BodyForm(torch::Tensor centers, torch::Tensor radii);

  /// The height above z = 0 of the lowest point, [...], m. position: [..., 3], m. orientation: [..., 4].
  torch::Tensor lowest_point(const torch::Tensor& position, const torch::Tensor& orientation) const;

  double size;   ///< m, the unit of errors: the side of a cube, or lcp::identification::size_of
  double reach;  ///< m, from the recorded point to the farthest one

 private:
  torch::Tensor centers_, radii_;  // undefined for a cube
};

/// What a body file describes.
struct TossedBody {
  physics::RigidScene scene;  ///< the body, of 1 kg, on level ground; dt and gravity are not those of the file
  BodyForm form;
};

/// Reads a JSON file with these entries:
///   box: the three edges, m; or balls: a list of [x, y, z, radius], m, from the recorded point in the axes of the
///   body. inertia: over mass, m^2, three moments about the axes of the body or a matrix, about the recorded point; may
///   be
///       missing for a box, which is of even density then.
///   mu, restitution, stiffness, dissipation: those of CubeFlags where they are missing.
/// Throws a UsageError that names the file and the entry.
TossedBody read_body(const std::filesystem::path& path);

/// What --learn may name for such a body, and the names of motion_model for it.
constexpr const char* kLearnableOfBody[] = {"mu",      "restitution", "stiffness", "dissipation", "inertia",
                                            "moments", "centers",     "radii",     "radius",      "size",
                                            "point",   "height",      "tilt"};
std::vector<std::string> scene_names(const std::vector<std::string>& learned);

}  // namespace lcp::training
