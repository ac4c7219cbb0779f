// Values that some ranks of an evaluation have computed and others have not: those of a mesh on a part of the
// ranks, which its own ranks may evaluate without the others.
//
//   ranks 0, 1 (the mesh of y)   eval(y)          sum(y) to all: reads y, which has a value
//   rank 2                       -                sum(y) to all: would record how y is computed
//
// The fingerprints differ. Each rank then names the values of such meshes below what is asked, by their
// places in the graph, and the others regard those as computed that all ranks of their mesh have.
#pragma once
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

// Called after Agreed::unlike. `named` begins alike on all ranks. Whether any rank has learned of a value:
// the same answer on all.
bool learn_values(const std::vector<int>& ids, const std::vector<Array>& named);

}  // namespace tessera
