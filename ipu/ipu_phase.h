/*
 * The phases that an operation or a work of the pipeline belongs to, as the letters that papers on
 * pipelines have for them. A field `phase` is one of these, in a char; '\0' is of none.
 */
#ifndef IPU_PHASE_H
#define IPU_PHASE_H

enum ipu_work_phase {
	IPU_PHASE_F = 'F', /* forward */
	IPU_PHASE_B = 'B', /* backward; where it is split, towards the gradient of the inputs */
	IPU_PHASE_W = 'W', /* and towards that of the weights */
	IPU_PHASE_R = 'R', /* recomputation: forward operations replayed for B */
	IPU_PHASE_U = 'U', /* weight update */
};

#endif /* IPU_PHASE_H */
