// TESSERA_PROFILE: the profile of a whole program, begun and ended with the runtime.
#pragma once
#include <memory>
#include <string>

namespace tessera {

// Begins where the setting names a folder.
void start_job_profile();
// Writes report.txt and trace.json there. Collective over the ranks whose program is done; a CommError where
// others have failed. IoError.
void finish_job_profile();
// Without writing: this rank's program has failed.
void drop_job_profile();

}  // namespace tessera
