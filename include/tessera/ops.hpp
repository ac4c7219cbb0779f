/// @file
/// Ops on arrays, one header per family. Names, broadcasting and meaning are NumPy's; every op works on every
/// sharding, and none gathers an operand if it can be computed from the shards.
///
/// An Operand is an Array or a plain number (weakly typed: x + 1 keeps x's dtype). Ops record: nothing runs
/// until a value is requested, and nothing here is collective. Errors are raised when the op is recorded, on
/// every rank with the same text. The contract of each family, with its rules for dtypes, shardings,
/// communication, accuracy and empty operands, is at the top of its header.
#pragma once
#include <tessera/ops/axes.hpp>
#include <tessera/ops/contract.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/index.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/reduce_named.hpp>
#include <tessera/ops/reshape.hpp>
