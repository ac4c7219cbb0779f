/// @file
/// Enumerations for options of several libraries. Their headers include this one; users need not.
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

/// The behaviour of solve for a matrix so ill-conditioned that no digit of the solution is reliable: rcond
/// below the rounding unit of the dtype.
enum class IllConditioned {
  accept,  ///< accepts it, without an estimate of the condition
  warn,    ///< warns on stderr, once per run of the program
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
