/// @file
/// Display of the progress of long work.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace tessera {

/// A bar on a terminal (stdout), or a plain line per minute in a log (stderr); written by rank 0 alone.
///   Progress progress("train", steps);
///   for (int step = 0; step < steps; ++step) { ...; progress.advance(1, "loss 0.031"); }
///
///   train  [=========>          ]  47 %  470 of 1000  12.5/s  0:42 left  loss 0.031
/// A terminal gets at most ten updates a second, a log one line a minute and one at the end; work of less
/// than a second writes nothing to a log. Not collective.
class Progress {
 public:
  /// A bar of `total` steps; 0: unknown, and the bar only counts. ArgumentError if it is negative.
  explicit Progress(std::string what, std::int64_t total = 0);
  ~Progress();  ///< writes the last line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Adds completed steps; `note` follows the figures.
  void advance(std::int64_t steps = 1, const std::string& note = "");
  std::int64_t done() const;  ///< steps so far

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
