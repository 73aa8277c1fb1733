/*
 * A network with a delay, for kernels that have no netem: forwards IPv4 packets between TUN devices
 * of network namespaces, each so long after it was sent.
 *
 * tun_delay MICROSECONDS NAMESPACE...: creates the device `wire` in each namespace. The last byte
 * of a packet's destination is the number of the namespace, from 1. Prints a line once all devices
 * exist; runs until it is killed. Packets beyond what the queue holds are lost.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MOST   16
#define QUEUE        8192
#define PACKET_BYTES 2048
#define DESTINATION  19 /* last byte of the destination in an IPv4 header */

static struct packet {
	int64_t due_ns;
	int to;
	size_t length;
	unsigned char data[PACKET_BYTES];
} queue[QUEUE];
static uint64_t first, last; /* in order of due times, since all have the same delay */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_device(const char *namespace)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wire"};
	char path[256];
	int space, device;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET) != 0)
		fail(path);
	close(space);
	device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0)
		fail("/dev/net/tun");
	return device;
}

static void receive(int device, int hosts, int64_t delay_ns)
{
	while (last - first < QUEUE) {
		struct packet *packet = &queue[last % QUEUE];
		const ssize_t length = read(device, packet->data, sizeof(packet->data));

		if (length <= 0)
			return;
		packet->to = length > DESTINATION ? packet->data[DESTINATION] - 1 : -1;
		if (packet->data[0] >> 4 != 4 || packet->to < 0 || packet->to >= hosts)
			continue;
		packet->length = (size_t)length;
		packet->due_ns = now_ns() + delay_ns;
		last++;
	}
}

static void send_due(const struct pollfd *devices)
{
	for (; first != last && queue[first % QUEUE].due_ns <= now_ns(); first++) {
		const struct packet *packet = &queue[first % QUEUE];

		if (write(devices[packet->to].fd, packet->data, packet->length) < 0)
			continue; /* lost, as by any network */
	}
}

int main(int argc, char **argv)
{
	struct pollfd devices[HOSTS_MOST];
	const int hosts = argc - 2;
	const int64_t delay_ns = hosts > 0 ? atoll(argv[1]) * 1000 : 0;

	if (hosts < 2 || hosts > HOSTS_MOST) {
		fprintf(stderr, "usage: tun_delay MICROSECONDS NAMESPACE NAMESPACE...\n");
		return 2;
	}
	for (int i = 0; i < hosts; i++)
		devices[i] = (struct pollfd){.fd = open_device(argv[i + 2]), .events = POLLIN};
	prctl(PR_SET_TIMERSLACK, 1UL);
	puts("ready");
	fflush(stdout);
	for (;;) {
		const int64_t wait =
			first == last ? 1000000000 : queue[first % QUEUE].due_ns - now_ns();
		const struct timespec time = {wait > 0 ? wait / 1000000000 : 0,
					      wait > 0 ? wait % 1000000000 : 0};

		if (last - first < QUEUE && ppoll(devices, (nfds_t)hosts, &time, NULL) < 0)
			fail("ppoll");
		for (int i = 0; i < hosts; i++)
			if (devices[i].revents & POLLIN)
				receive(devices[i].fd, hosts, delay_ns);
		send_due(devices);
	}
}
