/*
 * ipuscope/mpi.h gives a program the recording into which libipuscope-mpi writes this rank's MPI
 * calls, so that the program can add spans.
 *
 * Link the layer before the MPI library, or preload it (LD_PRELOAD). There is one per
 * implementation: libipuscope-mpi-openmpi.so, libipuscope-mpi-mpich.so. It records from MPI_Init to
 * MPI_Finalize, into DIRECTORY/rankN.db, where IPUSCOPE_MPI_REPORT names the directory (default:
 * mpi_report__TIME__PID of rank 0). `ipu-report merge DIRECTORY/rank*.db -o job.db` joins them.
 *
 *	#include <ipuscope/mpi.h>
 *
 *	#pragma weak ips_mpi_recording
 *
 *	struct ips_track *open_own_track(const char *name)
 *	{
 *		struct ips_recording *recording = ips_mpi_recording ? ips_mpi_recording() : 0;
 *		char message[512];
 *
 *		if (!recording || ips_recording_status(recording, message, sizeof(message)) != 0)
 *			return 0;
 *		return ips_track_open(recording, name, 0);
 *	}
 */
#ifndef IPUSCOPE_MPI_H
#define IPUSCOPE_MPI_H

#include <ipuscope/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the recording; NULL before MPI_Init and from MPI_Finalize on. A program that must also run
 * without the layer declares this function weak and checks that its address is not NULL. */
IPS_API struct ips_recording *ips_mpi_recording(void);

#ifdef __cplusplus
}
#endif

#endif /* IPUSCOPE_MPI_H */
