// A process that fork() makes of a rank has a copy of the session, but MPI and the memory that ranks share
// belong to its parent: there the runtime counts as not started.
#pragma once

namespace tessera {

// From now on children are known as such. A child of a rank that has peers cannot compute at all: it would
// speak to them in its parent's name.
void expect_children(bool has_peers);
bool is_child_process();
bool is_child_of_rank_with_peers();

}  // namespace tessera
