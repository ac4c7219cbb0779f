// Ops on arrays, one header per family. Broadcasting, promotion and names are NumPy's; every op works on every
// sharding.
//
// An `Operand` is an Array or a plain number (weakly typed). Unless said otherwise the result has the
// operands' broadcast shape, keeps their sharding, moves nothing when they agree, and raises ShapeError,
// DtypeError or ShardingError on every rank.
#pragma once
#include <tessera/ops/axes.hpp>
#include <tessera/ops/contract.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/index.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/reshape.hpp>
