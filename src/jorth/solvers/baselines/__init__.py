"""The methods that JOBCD is compared with: UMCM, ADMM, CSDM and the exponential form."""
