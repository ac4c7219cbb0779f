/// @file
/// Choices that options of several libraries offer. Their headers include this one; nobody needs to.
#pragma once

namespace tessera::fft {

/// The sharding of a result.
enum class OutSharding {
  /// Like the operand.
  keep,
  /// The layout of the last stage: saves moving the result back. An inverse from there costs no more.
  transposed,
  /// The sharding in FftOptions::given.
  given
};

}  // namespace tessera::fft

namespace tessera::linalg {

/// The way of solve where the condition of a matrix leaves no digit of the solution: rcond below the rounding
/// unit of the dtype.
enum class IllConditioned {
  accept,  ///< nothing, and does not look
  warn,    ///< says so on stderr, once in a run of the program
  refuse   ///< LinAlgError when computed, on every rank
};

}  // namespace tessera::linalg

namespace tessera::random {

/// The mapping from array positions to bits.
enum class Threefry {
  partitionable,  ///< JAX's default: an element's bits depend on its position alone
  original        ///< the generator of JAX before 0.5 (jax_threefry_partitionable is False)
};

}  // namespace tessera::random
