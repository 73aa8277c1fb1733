-- A training of twelve steps on one GPU, as `nsys export --type sqlite` writes it: docs/from-nsys.md shows what is made of it. Each step copies
-- its input, launches the kernels of four layers forward and backward, sums the gradients of all GPUs beside the backward pass and updates the weights.
CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '3.20.0');
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES
	(1, 'cudaLaunchKernel_v7000'),
	(2, 'cudaMemcpyAsync_v3020'),
	(3, 'cudaStreamSynchronize_v3020'),
	(4, 'python3'),
	(5, 'void gemm_kernel<float, 128, 128>(float const*, float const*, float*)'),
	(6, 'void relu_kernel<float>(float*)'),
	(7, 'void relu_grad_kernel<float>(float*, float const*)'),
	(8, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)'),
	(9, 'void multi_tensor_apply_kernel<Adam>(Adam)');
CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (4, 0x0100000007000007);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
INSERT INTO PROCESSES VALUES (0x0100000007000000, 7, 'python3');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85899345920, 132, 9, 0);

-- Of a step, in us from its start: a call, its time, what it launches, on which stream, when, and how long that takes.
CREATE TEMP TABLE work (number INTEGER PRIMARY KEY, call INTEGER, took INTEGER, name INTEGER, stream INTEGER, start INTEGER, lasts INTEGER);
INSERT INTO work VALUES
	(1, 20, 5, 5, 7, 29, 34),
	(2, 82, 5, 6, 7, 91, 6),
	(3, 122, 5, 5, 7, 131, 34),
	(4, 184, 5, 6, 7, 193, 6),
	(5, 224, 5, 5, 7, 233, 34),
	(6, 286, 5, 6, 7, 295, 6),
	(7, 326, 5, 5, 7, 335, 34),
	(8, 388, 5, 6, 7, 397, 6),
	(9, 428, 5, 5, 7, 437, 68),
	(10, 444, 5, 7, 7, 506, 8),
	(11, 458, 5, 8, 13, 515, 52),
	(12, 472, 5, 5, 7, 515, 68),
	(13, 488, 5, 7, 7, 584, 8),
	(14, 502, 5, 8, 13, 593, 52),
	(15, 516, 5, 5, 7, 593, 68),
	(16, 532, 5, 7, 7, 662, 8),
	(17, 546, 5, 8, 13, 671, 52),
	(18, 560, 5, 5, 7, 671, 68),
	(19, 576, 5, 7, 7, 740, 8),
	(20, 590, 5, 8, 13, 749, 52),
	(21, 604, 5, 9, 7, 802, 24);
CREATE TEMP TABLE steps AS WITH RECURSIVE n (step) AS (SELECT 0 UNION ALL SELECT step + 1 FROM n WHERE step < 11) SELECT step, 2000 + 842 * step AS at FROM n;

CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO NVTX_EVENTS SELECT 1000 * (at + column1), 1000 * (at + column2), 59, iif(column3 = 'step', 'step ' || step, column3), 0x0100000007000007, NULL, 0
	FROM steps JOIN (VALUES (0, 836, 'step'), (12, 424, 'forward'), (426, 600, 'backward'), (602, 614, 'optimizer'));
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000 * (at + call), 1000 * (at + call + took), 0x0100000007000007, 100 * step + number, 1, 0 FROM steps JOIN work;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000 * (at + 2), 1000 * (at + 9), 0x0100000007000007, 100 * step + 50, 2, 0 FROM steps;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000 * (at + 618), 1000 * (at + 832), 0x0100000007000007, 100 * step + 51, 3, 0 FROM steps;
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
	blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1000 * (at + start), 1000 * (at + start + lasts), 0, 1, stream, 0x0100000007000000, 100 * step + number, name,
	128, 1, 1, 256, 1, 1, 64, 0, 32768, NULL FROM steps JOIN work;
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, dstDeviceId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT 1000 * (at + 10), 1000 * (at + 24), 0, 1, 7, 0x0100000007000000, 100 * step + 50, 262144, 1, 1, 2, NULL FROM steps;
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER, syncType INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SELECT 1000 * (at + 619), 1000 * (at + 831), 0, 1, 7, 0x0100000007000000, 3 FROM steps;
