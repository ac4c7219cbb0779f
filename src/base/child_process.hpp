// A process that fork() creates from a rank has a copy of the session, but MPI and the shared memory belong
// to its parent: there the runtime counts as not started.
#pragma once

namespace tessera {

// Makes later children known as such. A child of a rank with peers cannot compute at all: its messages would
// be taken for its parent's.
void expect_children(bool has_peers);
bool is_child_process();
bool is_child_of_rank_with_peers();

}  // namespace tessera
