// Recorded tosses of a body, read from files.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lcp::training {

/// The motion of one toss at evenly spaced times: T samples, float64.
struct Toss {
  std::string name;           ///< of its file
  torch::Tensor position;     ///< [T, 3], m, of the centre
  torch::Tensor orientation;  ///< [T, 4], unit quaternions (w, x, y, z) from the axes of the body to those of the world
  torch::Tensor velocity;     ///< [T, 3], m/s
  torch::Tensor angular_velocity;  ///< [T, 3], rad/s, in the axes of the body

  std::int64_t count() const { return position.size(0); }
};

/// The measured numbers of all tosses, [T, 3 or 4] each, of which a fingerprint is made.
std::vector<torch::Tensor> tensors_of(const std::vector<Toss>& tosses);

/// The columns of a toss's file, in this order.
constexpr const char* kTossColumns[] = {"x",   "y",   "z",   "q_w",     "q_x",     "q_y",    "q_z",
                                        "v_x", "v_y", "v_z", "omega_x", "omega_y", "omega_z"};

/// The unit of length of the recorded tosses in the repository DAIRLab/contact-nets, half the side of their cube, m.
constexpr double kHalfWidth = 0.0524;

/// The help of a flag for the unit of length of tosses.
constexpr const char* kLengthUnitHelp =
    "Metres for a unit of length in the files; 0: 1 for .csv, 0.0524 for .pt, as in the repository contact-nets";

/// The files of the folder that have one of these extensions, in the order of their names, in which numbers are
/// compared as numbers. Throws a UsageError that names the folder where there are none.
std::vector<std::filesystem::path> files_of_tosses(const std::filesystem::path& folder,
                                                   const std::vector<std::string>& extensions);

/// Reads the files_of_tosses that end with .pt or .csv. A .pt file holds a tensor [T, 13] or more columns, or
/// [1, T, ...], as torch.save writes it, a .csv file the columns kTossColumns.
///   length: metres for a unit of x, y, z and of v_x, v_y, v_z; 0: 1 for .csv, kHalfWidth for .pt.
/// Throws a UsageError that names the file, and the row and column where one is wrong: a number that is not finite, a
/// quaternion whose length is not about 1, fewer than 3 samples.
std::vector<Toss> read_tosses(const std::filesystem::path& folder, double length);

}  // namespace lcp::training
