/*
 * Phases of operations and pipeline works, with the letters that pipeline papers use. A field
 * `phase` is a char with one of these values, or '\0' for none.
 */
#ifndef IPU_PHASE_H
#define IPU_PHASE_H

enum ipu_work_phase {
	IPU_PHASE_F = 'F', /* forward */
	IPU_PHASE_B = 'B', /* backward; if split, the gradients of the inputs */
	IPU_PHASE_W = 'W', /* and the gradients of the weights */
	IPU_PHASE_R = 'R', /* recomputation: forward operations repeated for B */
	IPU_PHASE_U = 'U', /* weight update */
};

#endif /* IPU_PHASE_H */
