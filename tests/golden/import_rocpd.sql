-- Read by tests/reports/test_report_formats.c: a row of every kind that rocprofv3 writes and the import reads.
CREATE TABLE "rocpd_metadata_0a" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
INSERT INTO "rocpd_metadata_0a" VALUES (1, 'schema_version', '3');
CREATE TABLE "rocpd_string_0a" (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO "rocpd_string_0a" VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API_EXT'), (3, 'KERNEL_DISPATCH'), (4, 'MEMORY_COPY_HOST_TO_DEVICE'), (5, 'roctxRangePushA'), (6, 'MARKER_CORE_RANGE_API'),
	(7, 'MEMORY_COPY_DEVICE_TO_DEVICE'), (8, 'MEMORY_COPY_FILL'), (9, 'odd');
CREATE TABLE "rocpd_info_process_0a" (id INTEGER PRIMARY KEY, pid INTEGER);
INSERT INTO "rocpd_info_process_0a" VALUES (1, 42);
CREATE TABLE "rocpd_info_thread_0a" (id INTEGER PRIMARY KEY, tid INTEGER);
INSERT INTO "rocpd_info_thread_0a" VALUES (1, 43), (2, 44);
CREATE TABLE "rocpd_info_agent_0a" (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, name TEXT, product_name TEXT);
INSERT INTO "rocpd_info_agent_0a" VALUES (1, 'CPU', 0, 'cpu', 'EPYC'), (2, 'GPU', 1, 'gfx942', 'MI300X'), (3, 'GPU', 2, 'gfx90a', 'MI250'), (4, 'GPU', NULL, 'none', 'none');
CREATE TABLE "rocpd_info_kernel_symbol_0a" (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER);
INSERT INTO "rocpd_info_kernel_symbol_0a" VALUES (1, '_Z4gemm', 'gemm', 64), (2, '_Z4add', NULL, 32);
CREATE TABLE "rocpd_event_0a" (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata TEXT);
INSERT INTO "rocpd_event_0a" VALUES (1, 2, 11, '{}'), (2, 3, 11, '{}'), (3, 3, 0, '{}'), (4, 6, 12, '{"message": "epoch 1"}'), (5, 2, 13, 'broken'), (6, 6, NULL, '{"message": ""}'), (7, NULL, 14, '{"message": "no marker"}');
CREATE TABLE "rocpd_region_0a" (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, name_id INTEGER, event_id INTEGER);
INSERT INTO "rocpd_region_0a" VALUES (1, 1, 1, 1100, 1150, 1, 1), (2, 1, 1, 1000, 2000, 5, 4), (3, 1, 1, 1200, 1210, 1, 5), (4, 1, 2, 1300, 1310, 5, 6), (5, 1, 2, 1400, 1410, 9, 7), (6, 1, 2, 1500, 1490, 1, 3),
	(7, 1, 2, NULL, 1490, 1, 1), (8, 1, 2, 1600, 1610, 1, NULL);
CREATE TABLE "rocpd_kernel_dispatch_0a" (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER, start INTEGER, end INTEGER, group_segment_size INTEGER,
	workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
INSERT INTO "rocpd_kernel_dispatch_0a" VALUES (1, 1, 2, 1, 3, 1300, 1400, 16, 256, 2, 3, 1024, 4, 5, 2), (2, 1, 3, 2, 4, 1399, 1500, 17, 256, 1, 1, 1024, 1, 1, 3), (3, 1, 1, 9, 3, 1600, 1700, 18, 1, 1, 1, 1, 1, 1, 1),
	(4, 1, 2, 1, 3, NULL, 1700, 18, 1, 1, 1, 1, 1, 1, 1);
CREATE TABLE "rocpd_memory_copy_0a" (id INTEGER PRIMARY KEY, pid INTEGER, start INTEGER, end INTEGER, name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, event_id INTEGER);
INSERT INTO "rocpd_memory_copy_0a" VALUES (1, 1, 1600, 1650, 4, 2, 1, 512, 3, 5), (2, 1, 1700, 1750, 7, 2, 3, 513, 3, 1), (3, 1, 1800, 1850, 8, 2, 2, 514, 3, NULL), (4, 1, 1900, 1950, 9, 1, 1, 515, 3, 5), (5, 1, NULL, 1950, NULL, 1, 1, 515, 3, 5);
CREATE TABLE "rocpd_memory_allocate_0a" (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, type TEXT, start INTEGER, end INTEGER, address INTEGER, size INTEGER);
INSERT INTO "rocpd_memory_allocate_0a" VALUES (1, 1, 2, 'ALLOC', 1010, 1020, 4096, 512), (2, 1, NULL, 'FREE', 1900, 1910, 4096, 512), (3, 1, 2, 'FREE', 1911, 1912, 4096, -7), (4, 1, 2, NULL, 1913, 1914, 8192, 8),
	(5, 1, 2, 'REALLOC', 1915, 1916, 8192, 9), (6, 1, 2, 'ALLOC', NULL, 1916, 8192, 9);
CREATE TABLE "rocpd_pmc_event_0a" (id INTEGER PRIMARY KEY, value REAL);
INSERT INTO "rocpd_pmc_event_0a" VALUES (1, 2.5), (2, 3.5);
-- A second process of a merged file, and a table whose ending is no id.
CREATE TABLE "rocpd_metadata_0b" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
CREATE TABLE "rocpd_metadata_0x" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
INSERT INTO "rocpd_metadata_0x" VALUES (1, 'schema_version', '9');
CREATE TABLE "rocpd_sample_0b" (id INTEGER PRIMARY KEY);
INSERT INTO "rocpd_sample_0b" VALUES (1);
