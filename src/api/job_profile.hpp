// TESSERA_PROFILE: the profile of a whole program, started and ended with the runtime.
#pragma once
#include <memory>
#include <string>

namespace tessera {

// Starts the profile if the setting names a folder.
void start_job_profile();
// Writes report.txt and trace.json into the folder of start_job_profile. Collective over the ranks whose
// program is done; CommError if other ranks have failed, IoError if the folder takes no files.
void finish_job_profile();
// Ends the profile without writing: this rank's program has failed.
void drop_job_profile();

}  // namespace tessera
