-- Read by tests/reports/test_report_formats.c: a row of every kind that rocmProfileData writes and the import reads.
CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMemcpy'), (3, 'CopyHostToDevice'), (4, 'KernelExecution'), (5, 'gemm'), (6, 'size=5'), (7, 'CopyDeviceToHost'), (8, 'CopyHostToHost'), (9, 'Odd'), (10, 'FillBuffer');
CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER, args_id INTEGER);
INSERT INTO rocpd_api VALUES (1, 7, 8, 10, 20, 2, 1), (2, 7, 8, 30, 40, 2, 6), (3, 7, 9, 35, NULL, 2, 99), (4, 7, 9, NULL, 50, 2, 6);
CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, description_id INTEGER, opType_id INTEGER);
INSERT INTO rocpd_op VALUES (1, 0, 0, 0, 50, 60, 1, 3), (2, 0, 0, 0, 60, 70, 5, 4), (3, 1, 2, 0, 70, 80, 1, 4), (4, 1, 2, 0, 80, 90, 5, 99), (5, 1, 2, 0, NULL, 90, 5, 4), (6, 1, 2, 0, 90, 95, 5, 7), (7, 1, 2, 0, 96, 97, 5, 8),
	(8, 1, 2, 0, 98, 99, 5, 9), (9, 1, 2, 0, 100, 101, 5, 10);
CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER);
INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 2), (3, 1, 2), (4, 3, 4), (5, NULL, 6), (6, 2, -5);
CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize);
INSERT INTO rocpd_kernelapi VALUES (1, 2, 3, 4, 5, 6, 7, 8);
CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, size);
INSERT INTO rocpd_copyapi VALUES (1, 4096);
CREATE TABLE rocpd_monitor (id INTEGER PRIMARY KEY, deviceType, deviceId, monitorType, start, end, value);
INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'sclk', 1, 2, '800'), (2, 'gpu', 0, 'sclk', 3, 4, 'n/a'), (3, 'gpu', 1, 'power', 5, 6, '1.5'), (4, 'gpu', 1, 'power', NULL, 6, '2');
