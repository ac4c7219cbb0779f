/// @file
/// Choices that options of several libraries offer. Their headers include this one; nobody needs to.
#pragma once

namespace tessera::fft {

/// How a result lies.
enum class OutSharding {
  /// Like the operand.
  keep,
  /// As the last stage leaves it: saves the way back; an inverse from there costs no more.
  transposed,
  /// As FftOptions::given says.
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
  original        ///< that of JAX before 0.5 (jax_threefry_partitionable is False)
};

}  // namespace tessera::random
