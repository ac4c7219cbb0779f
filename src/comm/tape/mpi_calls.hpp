// MPI's functions as the rest of comm calls them. With TESSERA_RECORD everything that arrives through them is
// recorded; under `tessera replay` the recording answers the calls, without MPI. Arguments and results are
// MPI's.
//
// A call is identified by its communicator, its kind and its number among these (for messages also peer and
// tag), never by time: how often a rank polls may differ between a run and its replay.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include <functional>
#include <string>

namespace tessera::comm {

enum class TapeUse { none, records, replays };
TapeUse tape_use();
// Reads TESSERA_RECORD and TESSERA_REPLAY. Before MPI's own start.
void choose_tape();
// Begins the recording of this rank, once MPI is up. `build` names the library's build.
void start_recording(const std::string& build);
// `end` runs where a replayed rank's recording ends; without it the replay ends there.
void at_end_of_tape(std::function<void()> end);

}  // namespace tessera::comm

namespace tessera::comm::mpi {

int Init_thread(int* argc, char*** argv, int required, int* provided);
int Initialized(int* flag);
int Finalized(int* flag);
int Finalize();
int Abort(MPI_Comm, int status);
int Get_processor_name(char* name, int* length);
int Error_string(int code, char* text, int* length);

int Comm_rank(MPI_Comm, int* rank);
int Comm_size(MPI_Comm, int* size);
int Comm_dup(MPI_Comm, MPI_Comm* copy);
int Comm_free(MPI_Comm*);
int Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
// MPI_Comm_create_group of these ranks of the communicator.
int Comm_of_ranks(MPI_Comm, int count, const int* ranks, int tag, MPI_Comm* made);
int Comm_split_type(MPI_Comm, int key, MPI_Comm* part);  // ranks that share memory
int Op_create(MPI_User_function*, int commutes, MPI_Op*);
int Op_free(MPI_Op*);

int Allreduce(const void* in, void* out, int count, MPI_Datatype, MPI_Op, MPI_Comm);
int Allgather(const void* in, int count, MPI_Datatype, void* out, int each, MPI_Datatype out_type, MPI_Comm);
int Allgatherv(const void* in, int count, MPI_Datatype, void* out, const int* counts, const int* offsets,
               MPI_Datatype out_type, MPI_Comm);
int Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype, MPI_Op, MPI_Comm);
int Bcast(void* data, int count, MPI_Datatype, int root, MPI_Comm);
int Barrier(MPI_Comm);
int Ibcast(void* data, int count, MPI_Datatype, int root, MPI_Comm, MPI_Request*);
int Iallreduce(const void* in, void* out, int count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);

int Isend(const void* data, int count, MPI_Datatype, int to, int tag, MPI_Comm, MPI_Request*);
int Irecv(void* data, int count, MPI_Datatype, int from, int tag, MPI_Comm, MPI_Request*);
int Iprobe(int from, int tag, MPI_Comm, int* found, MPI_Status*);
int Wait(MPI_Request*, MPI_Status*);
int Waitall(int count, MPI_Request*, MPI_Status*);
int Waitany(int count, MPI_Request*, int* which, MPI_Status*);
int Waitsome(int count, MPI_Request*, int* done, int* which, MPI_Status*);
int Testall(int count, MPI_Request*, int* done, MPI_Status*);
int Testsome(int count, MPI_Request*, int* done, int* which, MPI_Status*);
int Cancel(MPI_Request*);
int Request_free(MPI_Request*);

}  // namespace tessera::comm::mpi
